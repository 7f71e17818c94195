"""Why is the padding vector not zero?"""
