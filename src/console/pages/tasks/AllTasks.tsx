import { api } from "../../api/client.ts"
import { usePages } from "../../api/pages.ts"
import type { Schemas } from "../../api/schema.ts"
import { choiceIn, Filters } from "../../components/form/Filters.tsx"
import type { Filter } from "../../components/form/Filters.tsx"
import { Link } from "../../components/Link.tsx"
import { OwnerLink } from "../../components/list/OwnerLink.tsx"
import { PagedTable } from "../../components/list/PagedTable.tsx"
import type { Column } from "../../components/list/PagedTable.tsx"
import { searchOverAll, useFiltersOverAll } from "../../components/list/workFilters.ts"
import { PageHeader } from "../../components/PageHeader.tsx"
import { texts } from "../../texts/en.ts"
import { filterTexts } from "../../texts/en/filters.ts"
import { operatorTexts } from "../../texts/en/operator.ts"
import { taskListTexts } from "../../texts/en/tasks.ts"
import { stateColumns } from "./taskColumns.tsx"

type Task = Schemas["OperatorTask"]

const words = operatorTexts.all
export const statuses = ["pending", "processing", "completed", "failed"] as const

export const statusFilter: Filter = {
  name: "status",
  label: filterTexts.status,
  kind: "segments",
  options: statuses.map((it) => [it, texts.status[it]])
}

const columns: ReadonlyArray<Column<Task>> = [
  {
    title: texts.tasks.task,
    isPlain: true,
    cell: ({ id, model, user, vendor }) => (
      <Link to={`/tasks/${id}`} query={{ user_id: user.id }}>
        {vendor}/{model}
      </Link>
    )
  },
  { title: operatorTexts.users.user, cell: ({ user }) => <OwnerLink of={user} /> },
  ...stateColumns
]

/** The operator's list over all users. A task opens as its user sees it. */
export const AllTasks = () => {
  const search = { ...searchOverAll(), ...choiceIn("status", statuses) }
  const pages = usePages("all tasks", search, (page) =>
    api.GET("/manage/v1/operator/tasks", { query: { ...search, ...page } })
  )
  return (
    <>
      <PageHeader about={words.about}>
        <button type="button" onClick={pages.reload}>
          {texts.refresh}
        </button>
      </PageHeader>
      <Filters filters={useFiltersOverAll(statusFilter)} />
      <PagedTable
        words={{ ...taskListTexts, caption: words.tasks, emptyDetail: undefined }}
        search={search}
        columns={columns}
        pages={pages}
      />
    </>
  )
}
