"""What does each layer's hidden state say in tokens?"""
