"""What tokens does a text become?"""
