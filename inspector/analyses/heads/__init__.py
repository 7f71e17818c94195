"""What does each task head answer?"""
