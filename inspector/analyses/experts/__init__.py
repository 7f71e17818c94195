"""Does every expert differ, and which ones does a text use?"""
