"""What would AdamW decay, and how would the learning rate change?"""
