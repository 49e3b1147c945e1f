"""What a terminal shows a person of a request, and how it takes their verdict."""
