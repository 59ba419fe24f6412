"""`make reproduce`."""

from reproductions import published_controllers

if __name__ == "__main__":
    published_controllers.main()
