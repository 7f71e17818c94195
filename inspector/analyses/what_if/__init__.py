"""Which ties break when the model is changed?"""
