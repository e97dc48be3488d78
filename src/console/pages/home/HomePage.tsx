import { isOverAll } from "../../api/session.ts"
import { OperatorHome } from "./OperatorHome.tsx"
import { UserHome } from "./UserHome.tsx"

/** `/`: the current state, for a user or for the operator. */
export default function HomePage() {
  return isOverAll() ? <OperatorHome /> : <UserHome />
}
