"""What do masking and next-sentence prediction ask of the model?"""
