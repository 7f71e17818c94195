"""Which tokens does one text make more likely than another?"""
