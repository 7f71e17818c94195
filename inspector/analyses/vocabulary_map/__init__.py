"""Which tokens lie together on a map?"""
