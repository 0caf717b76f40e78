"""The mini-batch pipeline of mappers and reducers."""
