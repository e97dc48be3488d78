import { Link } from "../../components/Link.tsx"
import { BuyLink } from "../../components/shell/BuyLink.tsx"
import { Ago } from "../../components/Values.tsx"
import { isLow, parseCredits } from "../../format/credits.ts"
import { homeTexts } from "../../texts/en/home.ts"
import type { Home } from "./readHome.ts"

const words = homeTexts

/** A key that expires within this time counts as a problem. */
const soonMillis = 7 * 24 * 60 * 60_000

const endsSoon = (at: string | null): boolean => {
  const left = at === null ? Infinity : new Date(at).getTime() - Date.now()
  return left > 0 && left < soonMillis
}

/** What needs attention, in a strip; absent when all is well. */
export const Problems = ({ home: { balance, endpoints, keys } }: { readonly home: Home }) => {
  const failing = endpoints.filter(({ enabled, health }) => enabled && health.status === "failing")
  const expiring = keys.filter(({ expires_at: at }) => endsSoon(at))
  const used = keys.filter(({ remaining }) => remaining !== null && parseCredits(remaining) <= 0n)
  const isBelow = isLow(balance)
  if (!isBelow && failing.length + expiring.length + used.length === 0) return null
  return (
    <ul class="problems" aria-label={words.problems}>
      {isBelow && (
        <li>
          <Link to="/wallet">{words.lowBalance}</Link> <BuyLink />
        </li>
      )}
      {failing.map(({ health, id, url }) => (
        <li key={id}>
          <Link to="/webhooks/deliveries" query={{ endpoint_id: id }}>
            {words.failingEndpoint}
          </Link>{" "}
          <span class="faint">
            {url} · {words.failedAttempts(health.failed_attempts)}
          </span>
        </li>
      ))}
      {expiring.map(({ expires_at: at, id, name }) => (
        <li key={id}>
          <Link to="/keys">{words.expiring(name)}</Link>{" "}
          <span class="faint">
            <Ago at={at} />
          </span>
        </li>
      ))}
      {used.map(({ id, name }) => (
        <li key={id}>
          <Link to="/keys">{words.usedUp(name)}</Link>
        </li>
      ))}
    </ul>
  )
}
