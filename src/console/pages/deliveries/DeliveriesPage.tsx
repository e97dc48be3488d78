import { useState } from "preact/hooks"
import { useAction } from "../../api/action.ts"
import { api } from "../../api/client.ts"
import { readEndpoints } from "../../api/lists.ts"
import { useLive } from "../../api/live.ts"
import { usePages } from "../../api/pages.ts"
import { useResource } from "../../api/resource.ts"
import type { Schemas } from "../../api/schema.ts"
import { Confirm, DialogButton } from "../../components/form/DialogForm.tsx"
import { choiceIn, Filters, filterValues } from "../../components/form/Filters.tsx"
import type { Filter } from "../../components/form/Filters.tsx"
import { PagedTable } from "../../components/list/PagedTable.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { ProblemView } from "../../components/States.tsx"
import { viewedUser } from "../../router/location.ts"
import { filterTexts } from "../../texts/en/filters.ts"
import { webhookTexts } from "../../texts/en/webhooks.ts"
import { eventTypesOf } from "../webhooks/endpointForm.ts"
import { WebhookTabs } from "../webhooks/WebhookTabs.tsx"
import { deliveryColumns, resendColumn } from "./deliveryColumns.tsx"
import { redeliverAll, redeliveryOf, statuses } from "./redelivery.ts"
import type { Search } from "./redelivery.ts"

type Delivery = Schemas["WebhookDelivery"]

const words = webhookTexts.delivery

const filtersWith = (endpoints: ReadonlyMap<string, string>): ReadonlyArray<Filter> => [
  {
    name: "status",
    label: filterTexts.status,
    kind: "segments",
    options: statuses.map((it) => [it, words.status[it]])
  },
  { name: "endpoint_id", label: webhookTexts.endpoint, kind: "choice", options: [...endpoints] },
  {
    name: "type",
    label: words.event,
    kind: "choice",
    options: eventTypesOf("openai").map((it) => [it, it])
  },
  { name: "task_id", label: words.task, kind: "text" },
  { name: "trace_id", label: filterTexts.traceId, kind: "text" },
  { name: "since", label: filterTexts.since, kind: "time" },
  { name: "until", label: filterTexts.until, kind: "time" }
]

/** The search in the address, without values that the API would refuse. */
const searchInAddress = (): Search => ({
  ...filterValues(["endpoint_id", "task_id", "trace_id", "since", "until"]),
  ...choiceIn("status", statuses),
  ...choiceIn("type", eventTypesOf("openai"))
})

/** The URLs of the endpoints, by id. */
const useEndpoints = (user: string): ReadonlyMap<string, string> => {
  const { data } = useResource(`endpoints ${user}`, readEndpoints)
  return new Map(data?.map(({ id, url }) => [id, url]))
}

/** `/webhooks/deliveries`: the delivery log, with filters in the address. */
export default function DeliveriesPage() {
  const user = viewedUser() ?? ""
  const search = searchInAddress()
  const endpoints = useEndpoints(user)
  const pages = usePages("deliveries", search, (page) =>
    api.GET("/manage/v1/webhook-deliveries", { query: { ...search, ...page } })
  )
  useLive((event) => {
    if (event.type === "poll") pages.refresh()
    if (event.type === "delivery") pages.take(event.data, matches(event.data, search))
  })
  const { cause, run } = useAction()
  const resend = async (delivery: Delivery) => {
    const path = { id: delivery.id }
    await api.POST("/manage/v1/webhook-deliveries/{id}/redeliver", { path })
    pages.take({ ...delivery, status: "pending" }, false)
  }
  return (
    <>
      <PageHeader>
        {user === "" && <RedeliverAll search={search} onDone={pages.reload} />}
      </PageHeader>
      <WebhookTabs />
      <Filters filters={filtersWith(endpoints)} />
      {cause !== undefined && <ProblemView cause={cause} />}
      <PagedTable
        words={words}
        search={search}
        columns={[
          ...deliveryColumns(endpoints),
          ...(user === "" ? [resendColumn((it) => void run(() => resend(it)))] : [])
        ]}
        pages={pages}
      />
    </>
  )
}

/** The filters that can be checked without the gateway; the trace cannot. */
const matches = (delivery: Delivery, search: Search): boolean =>
  search.trace_id === undefined &&
  (search.status ?? delivery.status) === delivery.status &&
  (search.type ?? delivery.type) === delivery.type &&
  (search.endpoint_id ?? delivery.endpoint_id) === delivery.endpoint_id &&
  (search.task_id ?? delivery.task_id) === delivery.task_id &&
  (search.until === undefined || delivery.created_at < search.until)

interface RedeliverProps {
  readonly search: Search
  readonly onDone: () => void
}

const RedeliverAll = ({ onDone, search }: RedeliverProps) => {
  const [count, setCount] = useState<number | undefined>(undefined)
  const filter = redeliveryOf(search)
  if (filter === undefined) return null
  const confirm = async () => {
    setCount(await redeliverAll(filter))
    onDone()
  }
  return (
    <>
      {count !== undefined && <span role="status">{webhookTexts.resent(count)}</span>}
      <DialogButton label={words.againAll}>
        {(close) => (
          <Confirm
            title={words.againAllTitle}
            detail={words.againAllDetail(
              filter.status === undefined
                ? words.failedOrSkipped
                : words.status[filter.status].toLowerCase()
            )}
            action={words.again}
            onSubmit={confirm}
            onClose={close}
          />
        )}
      </DialogButton>
    </>
  )
}
