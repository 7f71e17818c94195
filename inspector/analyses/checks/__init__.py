"""Is anything wrong with this checkpoint?"""
