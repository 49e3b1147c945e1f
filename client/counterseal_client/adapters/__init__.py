"""Adapters: a tool behind the gate inside an agent framework, one module each. Each
needs the extra of its name, such as `pip install "counterseal-client[langgraph]"`."""
