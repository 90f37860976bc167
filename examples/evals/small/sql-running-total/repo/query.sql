SELECT day, SUM(amount), SUM(amount) OVER (ORDER BY day)
FROM orders
GROUP BY day
ORDER BY day;
