import type { Schemas } from "../../api/schema.ts"
import { Link } from "../../components/Link.tsx"
import type { Column } from "../../components/PagedTable.tsx"
import { Ago, Credits, Duration, Status } from "../../components/Values.tsx"
import { texts } from "../../texts/en.ts"

type Task = Schemas["TaskListItem"]

/** What was charged, or is held while the task runs. */
const Cost = ({ receipt, status }: Task) => {
  if (status === "pending" || status === "processing") {
    return <span class="faint">{texts.tasks.heldCost(receipt.held)}</span>
  }
  return status === "failed" ? (
    <span class="faint">{texts.tasks.free}</span>
  ) : (
    <Credits amount={receipt.captured} />
  )
}

export const taskColumns: ReadonlyArray<Column<Task>> = [
  {
    title: texts.tasks.model,
    isPlain: true,
    cell: ({ id, model, vendor }) => (
      <Link to={`/tasks/${id}`}>
        {vendor}/{model}
      </Link>
    )
  },
  {
    title: texts.tasks.status,
    isPlain: true,
    cell: ({ error, status }) => (
      <>
        <Status of={status} />
        {error !== null && <span class="faint"> · {error.title}</span>}
      </>
    )
  },
  {
    title: texts.tasks.duration,
    isNumber: true,
    cell: ({ created_at, ended_at }) => <Duration from={created_at} to={ended_at} />
  },
  { title: texts.tasks.cost, isNumber: true, cell: (task) => <Cost {...task} /> },
  {
    title: texts.tasks.created,
    isNumber: true,
    isPlain: true,
    cell: ({ created_at }) => <Ago at={created_at} />
  }
]
