import { isShown } from "../../api/address.ts"
import { useThrottled } from "../../api/listen.ts"
import { useLive, wallet } from "../../api/live.ts"
import { useResource } from "../../api/resource.ts"
import { Tile, Tiles } from "../../components/chart/Tiles.tsx"
import { Icon } from "../../components/Icon.tsx"
import { Link } from "../../components/Link.tsx"
import { Table } from "../../components/list/PagedTable.tsx"
import { TaskGallery } from "../../components/list/TaskGallery.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { Loaded, LoadingRows } from "../../components/States.tsx"
import { Credits } from "../../components/Values.tsx"
import { isLow, parseCredits, showCredits } from "../../format/credits.ts"
import { viewedUser } from "../../router/location.ts"
import { homeTexts } from "../../texts/en/home.ts"
import { isConsoleKey } from "../keys/keyForm.ts"
import { taskColumns } from "../tasks/taskColumns.tsx"
import { SpendingChart, WeekTile } from "./Charges.tsx"
import { Problems } from "./Problems.tsx"
import { readHome, runwayOf, successOf, weekOf } from "./readHome.ts"
import type { Home } from "./readHome.ts"

const words = homeTexts
const latest = 5
const shownResults = 6

/** Events arrive in bursts, so the page is reloaded at most this often. */
const pauseMillis = 1000

export const UserHome = () => {
  const home = useResource(viewedUser() ?? "", () => readHome(new Date()))
  const again = useThrottled(home.reload, pauseMillis)
  useLive((event) => {
    if (event.type === "poll" || isNews(home.data, event)) again()
  })
  return (
    <>
      <PageHeader>
        <Link to="/playground" query={{ kind: "token" }} class="button">
          {words.newChat}
        </Link>
        <Link to="/playground" query={{ kind: "images" }} class="button primary">
          {words.newImage}
        </Link>
      </PageHeader>
      <Loaded of={home} bones={<LoadingRows tiles={5} hasChart />}>
        {(it) => <HomeView home={it} />}
      </Loaded>
    </>
  )
}

/** A new stream repeats the current state, which is no news. */
const isNews = (
  home: Home | undefined,
  event: { readonly type: string; readonly data?: unknown }
): boolean => {
  if (event.type !== "wallet" || home === undefined) return false
  return JSON.stringify(event.data) !== JSON.stringify(home.balance)
}

const HomeView = ({ home }: { readonly home: Home }) => {
  const { amounts, days, tasks } = home
  return (
    <>
      <Problems home={home} />
      <Figures home={home} />
      <FirstSteps home={home} />
      <Results tasks={tasks} />
      {amounts.some((it) => parseCredits(it) > 0n) && (
        <section>
          <div class="table-head">
            <h2>{words.spending}</h2>
            <span class="actions">
              <Link to="/usage" query={{ by: "key", from: `${days.at(-1)?.slice(0, 8)}01` }}>
                {words.byKey}
              </Link>
              <Link to="/usage" query={{ from: `${days.at(-1)?.slice(0, 8)}01` }}>
                {words.byModel}
              </Link>
            </span>
          </div>
          <SpendingChart title={words.chart} days={days} amounts={amounts} />
        </section>
      )}
      {tasks.length > 0 && (
        <>
          <h2>{words.latest}</h2>
          <Table
            caption={words.latest}
            columns={taskColumns}
            rows={tasks.slice(0, latest)}
            idOf={({ id }) => id}
          />
          <p>
            <Link to="/tasks">{words.allTasks}</Link>
          </p>
        </>
      )}
    </>
  )
}

const Figures = ({ home }: HomeProps) => {
  const { amounts, balance: read, days, endpoints, running, tasks } = home
  const balance = wallet.value ?? read
  const { spent } = weekOf(amounts)
  const runway = runwayOf(balance.available_balance, spent)
  const success = successOf(tasks)
  const failing = endpoints.filter(({ enabled, health }) => enabled && health.status === "failing")
  const today = days.at(-1) ?? ""
  return (
    <Tiles>
      <Tile
        name={words.balance}
        to="/wallet"
        isBad={isLow(balance)}
        note={
          runway === undefined
            ? words.held(showCredits(balance.held_balance))
            : words.runway(runway)
        }
      >
        <Credits amount={balance.available_balance} />
      </Tile>
      <Tile name={words.today} to="/usage" query={{ day: today }}>
        <Credits amount={amounts.at(-1) ?? "0.00"} />
      </Tile>
      <WeekTile days={days} amounts={amounts} />
      <Tile name={words.running} to="/tasks" query={{ status: "processing" }}>
        {home.hasMoreRunning ? words.atLeast(running) : running}
      </Tile>
      {success.count > 0 && (
        <Tile
          name={words.success}
          to="/tasks"
          query={{ status: "failed" }}
          note={words.successOf(success.count)}
        >
          {success.percent}%
        </Tile>
      )}
      {endpoints.length > 0 && (
        <Tile name={words.failing} to="/webhooks" isBad={failing.length > 0}>
          {failing.length}
        </Tile>
      )}
    </Tiles>
  )
}

interface HomeProps {
  readonly home: Home
}

/** The first steps of a new user. Each is ticked automatically; the list disappears after the last one. */
const FirstSteps = ({ home: { endpoints, keys, tasks } }: HomeProps) => {
  const program = keys.filter((key) => !isConsoleKey(key))
  const steps = [
    { name: words.first.image, to: "/playground", isDone: tasks.length > 0 },
    { name: words.first.key, to: "/keys", isDone: program.length > 0 },
    {
      name: words.first.call,
      to: "/keys",
      isDone: program.some(({ last_used_at: used }) => used !== null)
    },
    { name: words.first.webhook, to: "/webhooks", isDone: endpoints.length > 0 }
  ]
  const done = steps.filter(({ isDone }) => isDone).length
  if (done === steps.length || viewedUser() !== undefined) return null
  return (
    <section class="steps card">
      <h2>{tasks.length === 0 ? words.firstTitle : words.stepsTitle(done, steps.length)}</h2>
      <ul>
        {steps.map(({ isDone, name, to }) => (
          <li key={name} data-done={isDone || undefined}>
            <Icon name={isDone ? "check" : "circle"} />
            {isDone ? (
              <>
                {name}
                <span class="hidden"> {words.first.done}</span>
              </>
            ) : (
              <Link to={to}>{name}</Link>
            )}
          </li>
        ))}
      </ul>
    </section>
  )
}

/** The latest results, each with its prompt. */
const Results = ({ tasks }: { readonly tasks: Home["tasks"] }) => {
  const shown = tasks
    .filter(({ preview }) => preview !== undefined && isShown(preview.url))
    .slice(0, shownResults)
  if (shown.length === 0) return null
  return (
    <section>
      <h2>{words.results}</h2>
      <TaskGallery tasks={shown} />
    </section>
  )
}
