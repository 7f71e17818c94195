"""What is in this checkpoint?"""
