"""What changes over training steps?"""
