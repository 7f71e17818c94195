"""Which tokens lie close together on a map?"""
