const [name = "world"] = process.argv.slice(2);
console.log(`Hello, ${name}!`);
