"""What the pages share; a folder of its own, since Streamlit takes files beside pages for pages."""
