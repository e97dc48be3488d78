/** A task in Graphile Worker: one job submits, the next one polls; both may run twice. */
import { Logger, run } from "graphile-worker"
import { Pool } from "pg"
import {
  complete,
  concurrency,
  connectionString,
  fetchPicture,
  pollSeconds,
  serve,
  start,
  submit
} from "../job.mjs"

const pool = new Pool({ connectionString, max: 10 })

const addPoll = `SELECT graphile_worker.add_job(
  'poll', json_build_object('id', $1::uuid), run_at := now() + interval '${pollSeconds} seconds')`

await run({
  pgPool: pool,
  concurrency,
  noHandleSignals: true,
  logger: new Logger(() => (level, message) => {
    if (level === "error") console.error(message)
  }),
  taskList: {
    submit: async ({ id }, { query }) => {
      const { rows } = await query("SELECT prompt, handle FROM tasks WHERE id = $1", [id])
      if (rows[0].handle !== null) return
      const handle = await submit(rows[0].prompt)
      // The handle and the job that polls it are saved together
      await query(`WITH started AS (${start}) ${addPoll}`, [id, handle])
    },
    poll: async ({ id }, { query }) => {
      const { rows } = await query("SELECT handle FROM tasks WHERE id = $1", [id])
      const isDone = await fetchPicture(id, rows[0].handle)
      await query(isDone ? complete : addPoll, [id])
    }
  }
})

serve((prompt) =>
  pool.query(
    `WITH task AS (INSERT INTO tasks (prompt) VALUES ($1) RETURNING id)
     SELECT graphile_worker.add_job('submit', json_build_object('id', id)) FROM task`,
    [prompt]
  )
)
