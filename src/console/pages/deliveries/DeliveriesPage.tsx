import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { pageAfter, readAll } from "../../api/lists.ts"
import { useLive } from "../../api/live.ts"
import { usePages } from "../../api/pages.ts"
import { useResource } from "../../api/resource.ts"
import type { Schemas } from "../../api/schema.ts"
import { Confirm } from "../../components/form/Dialog.tsx"
import { Filters, filterValues } from "../../components/form/Filters.tsx"
import type { Filter } from "../../components/form/Filters.tsx"
import { PagedTable } from "../../components/list/PagedTable.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { Empty, ProblemView } from "../../components/States.tsx"
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
const pageSize = 50

const filtersWith = (endpoints: ReadonlyMap<string, string>): ReadonlyArray<Filter> => [
  {
    name: "status",
    label: filterTexts.status,
    kind: "segments",
    options: statuses.map((it) => [it, words.status[it]])
  },
  { name: "endpoint_id", label: words.endpoint, kind: "choice", options: [...endpoints] },
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
const searchInAddress = (): Search => {
  const {
    status: chosen,
    type,
    ...rest
  } = filterValues(["status", "type", "endpoint_id", "task_id", "trace_id", "since", "until"])
  const status = statuses.find((it) => it === chosen)
  const event = eventTypesOf("openai").find((it) => it === type)
  return {
    ...rest,
    ...(status === undefined ? {} : { status }),
    ...(event === undefined ? {} : { type: event })
  }
}

/** The URLs of the endpoints, by id. */
const useEndpoints = (user: string): ReadonlyMap<string, string> => {
  const { data } = useResource(`endpoints ${user}`, () =>
    readAll((cursor) => api.GET("/manage/v1/webhook-endpoints", { query: pageAfter(100, cursor) }))
  )
  return new Map(data?.map(({ id, url }) => [id, url]))
}

/** `/webhooks/deliveries`: the delivery log, with filters in the address. */
export default function DeliveriesPage() {
  const user = viewedUser() ?? ""
  const search = searchInAddress()
  const key = JSON.stringify([user, search])
  const endpoints = useEndpoints(user)
  const pages = usePages<Delivery>(
    "deliveries",
    key,
    (cursor) =>
      api.GET("/manage/v1/webhook-deliveries", {
        query: { ...search, ...pageAfter(pageSize, cursor) }
      }),
    ({ id }) => id
  )
  const [fresh, setFresh] = useState<{ key: string; ids: ReadonlySet<string> }>({
    key,
    ids: new Set()
  })
  useLive((event) => {
    if (event.type === "poll" && !pages.isLoading && pages.rows.length <= pageSize) pages.reload()
    if (event.type !== "delivery" || pages.isLoading) return
    const delivery = event.data
    if (pages.update(delivery) || !isNewer(delivery, pages.rows[0])) return
    if (!matches(delivery, search)) return
    setFresh((it) => ({ key, ids: new Set([...(it.key === key ? it.ids : []), delivery.id]) }))
  })
  const [failure, setFailure] = useState<unknown>(undefined)
  const resend = async (delivery: Delivery) => {
    try {
      const path = { id: delivery.id }
      await api.POST("/manage/v1/webhook-deliveries/{id}/redeliver", { path })
      pages.update({ ...delivery, status: "pending" })
      setFailure(undefined)
    } catch (cause) {
      setFailure(cause)
    }
  }
  const showFresh = () => {
    setFresh({ key, ids: new Set() })
    pages.reload()
  }
  return (
    <>
      <PageHeader title={webhookTexts.deliveries}>
        {user === "" && <RedeliverAll search={search} onDone={pages.reload} />}
      </PageHeader>
      <WebhookTabs />
      <Filters filters={filtersWith(endpoints)} />
      {failure !== undefined && <ProblemView cause={failure} />}
      <PagedTable
        caption={words.caption}
        columns={[
          ...deliveryColumns(endpoints),
          ...(user === "" ? [resendColumn((it) => void resend(it))] : [])
        ]}
        pages={pages}
        idOf={({ id }) => id}
        fresh={fresh.key === key ? fresh.ids.size : 0}
        onFresh={showFresh}
        empty={
          Object.keys(search).length > 0 ? (
            <Empty title={words.noMatch} />
          ) : (
            <Empty title={words.empty}>
              <p>{words.emptyDetail}</p>
            </Empty>
          )
        }
      />
    </>
  )
}

const isNewer = (delivery: Delivery, first: Delivery | undefined): boolean =>
  first === undefined || delivery.created_at > first.created_at

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
  const [isAsked, setAsked] = useState(false)
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
      <button type="button" onClick={() => setAsked(true)}>
        {words.againAll}
      </button>
      {isAsked && (
        <Confirm
          title={words.againAllTitle}
          detail={words.againAllDetail(
            filter.status === undefined
              ? words.failedOrSkipped
              : words.status[filter.status].toLowerCase()
          )}
          action={words.again}
          onConfirm={confirm}
          onClose={() => setAsked(false)}
        />
      )}
    </>
  )
}
