/**
 * Makes V8 store the static properties of the class in V8's fast form, and not in a dictionary.
 *
 * V8 uses a dictionary if the class has a static getter with a computed name. Then V8 (Node 20 and 24)
 * never runs optimized code of a function that constructs an instance of the class. It compiles the
 * function, discards the result because of the dictionary, and soon compiles it again. postgres.js
 * 3.4.9 constructs instances of two such classes for each statement.
 */
export function giveFastForm(someClass: object): void {
  const heir = Object.create(someClass)
  // This read has the effect: V8 gives the fast form to an object through which others inherit.
  heir.name
}
