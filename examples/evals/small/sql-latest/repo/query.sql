SELECT name, day, amount
FROM customers
JOIN orders ON orders.customer = customers.id
ORDER BY name;
