#!/bin/sh
# How many lines the .txt files of a folder have in all.
sum=0
for file in $(ls "$1"/*.txt); do
  lines=$(wc -l < $file)
  sum=$((sum + lines))
done
echo "$sum"
