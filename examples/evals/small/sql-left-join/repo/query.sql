SELECT name, SUM(amount)
FROM customers
JOIN orders ON orders.customer = customers.id
GROUP BY customers.id
ORDER BY name;
