SELECT DISTINCT name
FROM customers
JOIN orders ON orders.customer = customers.id
WHERE day < '2026-02-01' OR day > '2026-02-28'
ORDER BY name;
