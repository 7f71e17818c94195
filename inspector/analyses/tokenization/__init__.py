"""How is a text split into tokens?"""
