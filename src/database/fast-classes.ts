/**
 * Takes a query of postgres.js and its result. Gives the fast form to their two classes, Query and
 * Result, which postgres.js does not export.
 */
export function giveFastForms(query: object, result: object): void {
  giveFastForm(query.constructor)
  giveFastForm(result.constructor)
}

/**
 * Makes V8 store the static properties of a class in V8's fast form, and not in a dictionary.
 *
 * V8 uses a dictionary if the class has a static getter with a computed name. Then V8 (Node 20 and 24)
 * never runs optimized code of a function that constructs an instance of the class. It compiles the
 * function, discards the result because of the dictionary, and soon compiles it again. postgres.js
 * 3.4.9 constructs instances of two such classes for each statement.
 */
function giveFastForm(someClass: object): void {
  const heir = Object.create(someClass)
  // Do not remove this read. V8 changes the class to the fast form when a property is read through an
  // object that inherits from the class.
  heir.name
}
