"""What Python workers have of the control stream, and what programs call."""
