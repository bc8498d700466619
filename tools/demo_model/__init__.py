"""The demonstration model that ships with Fulgur: data, tokenizer, training, export and evaluation."""
