"""What does each step of the head do to a token?"""
