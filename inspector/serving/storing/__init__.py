"""What a server keeps of uploads: how they arrive, are published, and are shared with other servers."""
