"""What does an adapter change, and what of it will a merge keep?"""
