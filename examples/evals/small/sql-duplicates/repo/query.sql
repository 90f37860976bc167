SELECT name, COUNT(*)
FROM customers
GROUP BY name;
