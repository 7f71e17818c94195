"""Which parameters share memory?"""
