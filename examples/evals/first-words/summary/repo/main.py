from convert import to_fahrenheit

print(to_fahrenheit(100))
