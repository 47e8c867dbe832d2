// One step of a client of Node.js: NAME STEP.
const [name, step] = process.argv.slice(2);
const grouped = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY ward";
const above = "SELECT COUNT(*) AS n FROM visits WHERE age > $1 AND ward = $2";
const listed = "SELECT COUNT(*) AS n FROM visits WHERE ward = ANY($1)";
const wrong = "SELECT COUNT(*) FROM visits WHERE heigth > 3";
const probe = `SELECT * FROM (${grouped}) AS q WHERE 0=1`;
const columns = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'";
const texts = { connect: "SELECT 1", introspect: columns, refusal: wrong, probe };
const { PGHOST: host, PGPORT, PGUSER: user, PGPASSWORD: password, PGDATABASE: database, PGOPTIONS: options } = process.env;
const port = Number(PGPORT);
const text = texts[step] ?? grouped;
const show = (found) => console.log(JSON.stringify(found));

const clients = {
  async pg() {
    const { Client } = require("pg");
    const client = new Client({ host, port, user, password, database, options });
    await client.connect();
    if (step === "parameters") {
      show((await client.query(above, [40, "Surgery"])).rows);
      show((await client.query(listed, [["Surgery"]])).rows);
    } else {
      const found = await client.query(text);
      show([found.fields.map((field) => field.name), found.rows]);
    }
    await client.end();
  },
  async postgres() {
    const sql = require("postgres")({ host, port, user, password, database, connection: { "tacit.epsilon": "0.1" } });
    try {
      if (step === "parameters") {
        show(await sql`SELECT COUNT(*) AS n FROM visits WHERE age > ${40} AND ward = ANY(${["Surgery"]})`);
      } else if (step === "question") {
        for await (const rows of sql.unsafe(grouped).cursor(1)) show(rows);
      } else {
        const found = await sql.unsafe(text);
        show([found.columns.map((column) => column.name), found]);
      }
    } finally {
      await sql.end();
    }
  },
  async knex() {
    const knex = require("knex")({ client: "pg", connection: { host, port, user, password, database, options } });
    try {
      if (step === "introspect") show(await knex("visits").columnInfo());
      else if (step === "parameters") show(await knex("visits").where("age", ">", 40).whereIn("ward", ["Surgery"]).count());
      else if (text === grouped) show(await knex("visits").select("ward").count("* as n").groupBy("ward").orderBy("ward"));
      else show((await knex.raw(text)).fields.map((field) => field.name));
    } finally {
      await knex.destroy();
    }
  },
  async kysely() {
    const { Kysely, PostgresDialect, sql } = require("kysely");
    const { Pool } = require("pg");
    const db = new Kysely({ dialect: new PostgresDialect({ pool: new Pool({ host, port, user, password, database, options }) }) });
    try {
      if (step === "introspect") show(await db.introspection.getTables());
      else if (step === "parameters")
        show(await db.selectFrom("visits").select(db.fn.countAll().as("n")).where("age", ">", 40).execute());
      else if (text === grouped)
        show(await db.selectFrom("visits").select(["ward", db.fn.countAll().as("n")]).groupBy("ward").execute());
      else show(await sql.raw(text).execute(db));
    } finally {
      await db.destroy();
    }
  },
  async sequelize() {
    const { Sequelize, QueryTypes } = require("sequelize");
    const dialectOptions = { options };
    const db = new Sequelize(database, user, password, { host, port, dialect: "postgres", logging: false, dialectOptions });
    try {
      if (step === "connect") await db.authenticate();
      else if (step === "introspect") show([await db.getQueryInterface().showAllTables(), await db.getQueryInterface().describeTable("visits")]);
      else if (step === "parameters") show(await db.query(above, { bind: [40, "Surgery"], type: QueryTypes.SELECT }));
      else show(await db.query(text));
    } finally {
      await db.close();
    }
  },
  async typeorm() {
    require("reflect-metadata");
    const { DataSource } = require("typeorm");
    const db = new DataSource({ type: "postgres", host, port, username: user, password, database, extra: { options } });
    await db.initialize();
    try {
      const runner = db.createQueryRunner();
      if (step === "introspect") show((await runner.getTable("visits")).columns.map((column) => column.name));
      else if (step === "parameters") show(await db.query(above, [40, "Surgery"]));
      else show(await db.query(text));
    } finally {
      await db.destroy();
    }
  },
  async drizzle() {
    const { drizzle } = require("drizzle-orm/node-postgres");
    const { count, gt, sql } = require("drizzle-orm");
    const { integer, pgTable, text: words } = require("drizzle-orm/pg-core");
    if (step === "introspect") return introspectByDrizzleKit();
    const visits = pgTable("visits", { age: integer("age"), ward: words("ward") });
    const db = drizzle({ connection: { host, port, user, password, database, options } });
    try {
      if (step === "parameters") show(await db.select({ n: count() }).from(visits).where(gt(visits.age, 40)));
      else if (text === grouped) show(await db.select({ ward: visits.ward, n: count() }).from(visits).groupBy(visits.ward));
      else show((await db.execute(sql.raw(text))).fields.map((field) => field.name));
    } finally {
      await db.$client.end();
    }
  },
};

// drizzle-kit is a command: it writes the tables that it finds into a file.
function introspectByDrizzleKit() {
  const { mkdtempSync, readFileSync, writeFileSync } = require("fs");
  const path = require("path");
  const folder = mkdtempSync(path.join(require("os").tmpdir(), "drizzle-"));
  const config = path.join(folder, "drizzle.config.json");
  const credentials = { host, port, user, password, database, ssl: false };
  writeFileSync(config, JSON.stringify({ dialect: "postgresql", out: path.join(folder, "out"), dbCredentials: credentials }));
  const command = [path.join(process.env.NODE_PATH, "drizzle-kit", "bin.cjs"), "introspect", "--config", config];
  require("child_process").execFileSync("node", command, { cwd: path.dirname(process.env.NODE_PATH) });
  console.log(readFileSync(path.join(folder, "out", "schema.ts"), "utf8"));
}

clients[name]().catch((error) => {
  const cause = error.cause ?? error.original ?? error;
  console.log(cause.message ?? error.message, cause.hint ?? "");
  process.exit(1);
});
