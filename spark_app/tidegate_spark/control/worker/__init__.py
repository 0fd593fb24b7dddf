"""The control stream in Python workers, and the functions that programs call. Asks the driver."""
