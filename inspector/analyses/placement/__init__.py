"""Where would the model run, and in which precision?"""
