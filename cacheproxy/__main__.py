"""``python -m cacheproxy``: the same as the ``cacheproxy`` command."""

from cacheproxy.cli import main

if __name__ == "__main__":
    main()
