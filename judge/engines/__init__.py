"""Where submissions are measured: lanes, and the engines that run them."""
