"""What does the model predict for a mask?"""
