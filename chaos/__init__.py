"""`make chaos`: the product as it really runs, under load, while its processes and
servers are killed, frozen and emptied; then an auditor says whether anything was lost,
doubled or done without authority. Nothing here ships."""
