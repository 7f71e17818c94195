"""Which classes is this model made of, and what does it return?"""
