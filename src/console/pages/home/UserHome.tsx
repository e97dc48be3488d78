import { useMemo } from "preact/hooks"
import { api, dataOf } from "../../api/client.ts"
import { useLive, wallet } from "../../api/live.ts"
import { useResource } from "../../api/resource.ts"
import type { Schemas } from "../../api/schema.ts"
import { BarChart } from "../../components/BarChart.tsx"
import { Link } from "../../components/Link.tsx"
import { Table } from "../../components/PagedTable.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { Empty, Loaded } from "../../components/States.tsx"
import { Tile, Tiles } from "../../components/Tiles.tsx"
import { Credits } from "../../components/Values.tsx"
import { parseCredits, shareOfCredits, showCredits, sumCredits } from "../../format/credits.ts"
import { dayOf, monthUpTo } from "../../format/time.ts"
import { location } from "../../router/location.ts"
import { texts } from "../../texts/en.ts"
import { taskColumns } from "../tasks/taskColumns.tsx"

const words = texts.home
const countedAtMost = 100
const latest = 5

/** What a user asks first, read at once. */
const readHome = async (now: Date) => {
  const days = monthUpTo(now)
  const unfinished = (status: "pending" | "processing") =>
    dataOf(api.GET("/manage/v1/tasks", { params: { query: { status, limit: countedAtMost } } }))
  const [balance, usage, pending, processing, endpoints, tasks] = await Promise.all([
    dataOf(api.GET("/manage/v1/wallet", {})),
    dataOf(
      api.GET("/manage/v1/usage", {
        params: { query: { from: days[0] ?? dayOf(now), to: dayOf(now), limit: countedAtMost } }
      })
    ),
    unfinished("pending"),
    unfinished("processing"),
    dataOf(
      api.GET("/manage/v1/webhook-endpoints", { params: { query: { limit: countedAtMost } } })
    ),
    dataOf(api.GET("/manage/v1/tasks", { params: { query: { limit: latest } } }))
  ])
  return {
    balance,
    days,
    spent: new Map(usage.data.map(({ amount, day }) => [day, amount])),
    running: pending.data.length + processing.data.length,
    hasMoreRunning: pending.next_cursor !== null || processing.next_cursor !== null,
    failing: endpoints.data.filter(({ enabled, health }) => enabled && health.status === "failing")
      .length,
    tasks: tasks.data
  }
}

type Home = Awaited<ReturnType<typeof readHome>>

/** Events come in crowds; the page is read again at most so often. */
const pauseMillis = 1000

export const UserHome = () => {
  const user = location.value.query.get("user_id") ?? ""
  const home = useResource(user, () => readHome(new Date()))
  const again = useMemo(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    return (read: () => void) => {
      timer ??= setTimeout(() => {
        timer = undefined
        read()
      }, pauseMillis)
    }
  }, [])
  useLive((event) => {
    if (event.type === "poll" || isNews(home.data, event)) again(home.reload)
  })
  return (
    <>
      <PageHeader title={words.title} />
      <Loaded of={home}>{(it) => <Figures home={it} />}</Loaded>
    </>
  )
}

/** A new stream tells everything once more. */
const isNews = (
  home: Home | undefined,
  event: { readonly type: string; readonly data?: unknown }
): boolean => {
  if (event.type !== "wallet" || home === undefined) return false
  return JSON.stringify(event.data) !== JSON.stringify(home.balance)
}

const Figures = ({ home }: { readonly home: Home }) => {
  const balance: Schemas["Wallet"] = wallet.value ?? home.balance
  const { days, failing, hasMoreRunning, running, spent, tasks } = home
  const amounts = days.map((day) => spent.get(day) ?? "0.00")
  const most = amounts.reduce(
    (one, it) => (parseCredits(it) > parseCredits(one) ? it : one),
    "0.00"
  )
  return (
    <>
      <Tiles>
        <Tile
          name={words.balance}
          isBad={balance.state === "ALERTED"}
          note={
            balance.state === "ALERTED" ? words.low : words.held(showCredits(balance.held_balance))
          }
        >
          <Credits amount={balance.available_balance} />
        </Tile>
        <Tile name={words.today}>
          <Credits amount={amounts.at(-1) ?? "0.00"} />
        </Tile>
        <Tile name={words.month}>
          <Credits amount={sumCredits(amounts)} />
        </Tile>
        <Tile name={words.running}>{hasMoreRunning ? words.atLeast(running) : running}</Tile>
        <Tile name={words.failing} note={words.failingHelp} isBad={failing > 0}>
          {failing}
        </Tile>
      </Tiles>
      <BarChart
        title={words.chart}
        bars={days.map((day, index) => ({
          label: day,
          value: showCredits(amounts[index] ?? "0.00"),
          share: shareOfCredits(amounts[index] ?? "0.00", most)
        }))}
      />
      {tasks.length === 0 ? (
        <First />
      ) : (
        <>
          <h2>{words.latest}</h2>
          <Table caption={words.latest} columns={taskColumns} rows={tasks} idOf={({ id }) => id} />
          <p>
            <Link to="/tasks">{words.allTasks}</Link>
          </p>
        </>
      )}
    </>
  )
}

const First = () => (
  <Empty title={words.firstTitle}>
    <p>{words.firstDetail}</p>
    <ol>
      {words.first.map((it) => (
        <li key={it}>{it}</li>
      ))}
    </ol>
  </Empty>
)
