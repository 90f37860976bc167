#!/bin/sh
# Greets whoever is named.
name="$1"
echo "Hello, $name"
