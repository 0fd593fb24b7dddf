"""What is asked of the API server before anything is stopped for an edit. Stores nothing."""
