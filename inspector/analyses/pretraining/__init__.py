"""What do masking and the next sentence ask of the model?"""
